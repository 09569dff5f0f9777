

# What waits for PyTorch, behind a hook whose _begin(torch) is called when it was imported.
class _Finder:
    """Waits for the first import of torch, and is gone then."""

    def find_spec(self, name, path=None, target=None):
        if name != 'torch':
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec('torch')
        if spec is None or not hasattr(spec.loader, 'exec_module'):
            return spec
        real = spec.loader.exec_module

        def exec_module(module):
            real(module)
            _begin(module)

        spec.loader.exec_module = exec_module
        return spec


if _directory:
    sys.meta_path.insert(0, _Finder())
