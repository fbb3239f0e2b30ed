"""The service: Run Memory over HTTP, for one machine or many.

Belongs here: routes, keys, body limits, settings, running under uvicorn. What a call does is the engine's.
"""
