// The global interpreter lock, for any thread of the core.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <utility>

#include "io/shared_state.hpp"

namespace mt_scaffold {

// Holds the GIL for its lifetime, like PyGILState_Ensure(). A thread unknown to Python gets a temporary thread state,
// which CPython creates under an internal lock, without the GIL; in Python 3.11 a child forked meanwhile would never
// get that lock, so the state is created while no fork can begin.
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
    PyThreadState_DeleteCurrent();  // takes that lock as well, but under the GIL, which a fork in Python needs
  }

 private:
  PyThreadState* own_ = nullptr;
  PyGILState_STATE before_ = PyGILState_UNLOCKED;
};

// A Python object for functions of the core, whose last copy may be destroyed on a thread that does not hold the GIL.
inline std::shared_ptr<nanobind::object> shared_object(nanobind::object object) {
  return {new nanobind::object(std::move(object)), [](nanobind::object* owned) {
            const HoldGil gil;
            delete owned;
          }};
}

}  // namespace mt_scaffold
