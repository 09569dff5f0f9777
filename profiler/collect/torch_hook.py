# Written by 'memprof run --torch-snapshot' and gone when the run is over: as sitecustomize, it has PyTorch record its own
# history of its CUDA memory and leave it at exit, for a comparison. It changes nothing else, and never fails the program.
import os
import sys

_directory = os.environ.get('MEMPROF_TORCH', '')


def _tell(what, error):
    try:
        with open(os.path.join(_directory, 'error-%d' % os.getpid()), 'w') as f:
            f.write('%s: %s: %s' % (what, type(error).__name__, error))
    except OSError:
        pass


def _begin(torch):
    import atexit
    pid = os.getpid()

    def record():
        memory = torch.cuda.memory
        try:
            try:
                memory._record_memory_history(max_entries=1 << 40, stacks='python')
            except TypeError:  # PyTorch 2.0
                memory._record_memory_history(True, trace_alloc_max_entries=1 << 40, trace_alloc_record_context=True)
        except Exception as error:
            _tell('recording its history', error)

    def dump():
        if os.getpid() != pid:  # a fork's child has its parent's handlers
            return
        try:
            if torch.cuda.is_initialized():
                torch.cuda.memory._dump_snapshot(os.path.join(_directory, 'snapshot-%d.pickle' % pid))
        except Exception as error:
            _tell('writing its snapshot', error)

    try:
        torch.cuda._lazy_call(record)  # when CUDA is used for the first time: before that there is nothing to switch on
        atexit.register(dump)
    except Exception as error:
        _tell('preparing', error)
