set(BRAID_FACADES nn)
set(BRAID_PUBLIC_HEADERS
  tensor/upwards.h
  tensor/cpu/loops.h
)
