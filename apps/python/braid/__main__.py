from braid._program import main

main()
