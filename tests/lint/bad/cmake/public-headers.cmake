set(BRAID_FACADES tensor/tensor.h)
set(BRAID_PUBLIC_HEADERS
  tensor/upwards.h
  tensor/cpu/loops.h
)
