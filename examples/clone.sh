make demo
make test
