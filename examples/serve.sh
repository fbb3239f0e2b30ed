runmemory keys issue
runmemory serve
