"""The rules of Run Memory as pure functions: no clock, no input or output, no framework."""
