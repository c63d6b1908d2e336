// The global interpreter lock, for any thread of the core.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "io/interruption.hpp"
#include "io/shared_state.hpp"

namespace mt_scaffold {

// While Python exits, it ends each thread that asks for the GIL. Up to 3.13 it does so by unwinding the thread, which
// aborts the process at a destructor or a catch (...) on the way. Such a thread waits here for the end of the process.
[[noreturn]] inline void wait_for_exit() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Calls Python, or something that takes the GIL.
template <typename Call>
auto or_wait_for_exit(Call&& call) {
#if defined(__GLIBCXX__)
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    wait_for_exit();
  }
#else
  return call();
#endif
}

// Holds the GIL for its lifetime, like PyGILState_Ensure(). A thread unknown to Python gets a temporary thread state,
// which CPython creates under an internal lock, without the GIL; in Python 3.11 a child forked meanwhile would never
// get that lock, so the state is created while no fork can begin.
class HoldGil {
 public:
  HoldGil() {
    if (exits()) {
      // The thread that ends Python frees its objects, and holds the GIL. When it is done, PyGILState_Check() is true
      // in every thread, and none has a state.
      if (!PyGILState_Check() || !PyGILState_GetThisThreadState()) wait_for_exit();
      return;
    }
    takes_ = true;
    or_wait_for_exit([&] {
      if (PyGILState_GetThisThreadState()) {
        before_ = PyGILState_Ensure();
        return;
      }
      {
        std::lock_guard lock(shared_state);
        own_ = PyThreadState_New(PyInterpreterState_Main());
      }
      PyEval_RestoreThread(own_);
    });
  }
  HoldGil(const HoldGil&) = delete;
  HoldGil& operator=(const HoldGil&) = delete;
  ~HoldGil() {
    if (!takes_) return;
    if (!own_) {
      PyGILState_Release(before_);
      return;
    }
    PyThreadState_Clear(own_);
    PyThreadState_DeleteCurrent();  // takes that lock as well, but under the GIL, which a fork in Python needs
  }

 private:
  static bool exits() {
#if PY_VERSION_HEX >= 0x030D0000
    return !Py_IsInitialized() || Py_IsFinalizing();
#else
    return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
  }

  bool takes_ = false;
  PyThreadState* own_ = nullptr;
  PyGILState_STATE before_ = PyGILState_UNLOCKED;
};

// Releases the GIL for its lifetime.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;
  ~ReleaseGil() {
    or_wait_for_exit([&] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* const state_;
};

// An exception such as KeyboardInterrupt, which is not an Exception in Python.
class PythonInterruption : public nanobind::python_error, public Interruption {};

// Calls Python on any thread of the core.
template <typename Call>
auto with_gil(Call&& call) {
  const HoldGil gil;
  try {
    return or_wait_for_exit(call);
  } catch (nanobind::python_error& error) {
    if (error.matches(PyExc_Exception)) throw;
    error.restore();
  }
  throw PythonInterruption();
}

// Handles the signals that have arrived, such as Ctrl-C, in the thread that Python handles them in.
inline void handle_signals() {
  with_gil([] {
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  });
}

// A Python object for functions of the core, whose last copy may be destroyed on a thread that does not hold the GIL.
inline std::shared_ptr<nanobind::object> shared_object(nanobind::object object) {
  return {new nanobind::object(std::move(object)), [](nanobind::object* owned) {
            const HoldGil gil;
            delete owned;
          }};
}

}  // namespace mt_scaffold
