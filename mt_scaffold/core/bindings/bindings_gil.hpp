// The global interpreter lock, for any thread of the core.
#pragma once

#include <Python.h>

#include <mutex>

#include "io/shared_state.hpp"

namespace mt_scaffold {

// Holds the lock as long as this lives, as PyGILState_Ensure() does. A thread that Python does not know gets a thread
// state for that time. To make one, CPython takes a lock of its own without the GIL, and the child of a fork in that
// moment would wait for it for ever (in Python 3.11): so it is made while no fork can begin.
class HoldGil {
 public:
  HoldGil() {
    if (PyGILState_GetThisThreadState()) {
      before_ = PyGILState_Ensure();
      return;
    }
    {
      std::lock_guard lock(shared_state);
      own_ = PyThreadState_New(PyInterpreterState_Main());
    }
    PyEval_RestoreThread(own_);
  }
  HoldGil(const HoldGil&) = delete;
  HoldGil& operator=(const HoldGil&) = delete;
  ~HoldGil() {
    if (!own_) {
      PyGILState_Release(before_);
      return;
    }
    PyThreadState_Clear(own_);
    PyThreadState_DeleteCurrent();  // takes that lock, too, but holds the GIL, which a fork in Python needs
  }

 private:
  PyThreadState* own_ = nullptr;
  PyGILState_STATE before_ = PyGILState_UNLOCKED;
};

}  // namespace mt_scaffold
