
# The sitecustomize that would have been found without the one above; its names begin with _.
_us = sys.modules.get(__name__)
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [_entry for _entry in sys.path if os.path.abspath(_entry) != _here]
sys.modules.pop('sitecustomize', None)
try:
    import sitecustomize  # noqa: F401
except ImportError:
    pass
sys.modules.setdefault('sitecustomize', _us)
