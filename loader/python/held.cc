#include "loader/python/held.h"

namespace tune::loader::python {

UseLock::UseLock(std::atomic_flag& is_busy) : is_busy_(is_busy) {
    if (!is_busy_.test_and_set(std::memory_order_acquire)) return;
    PyErr_SetString(PyExc_RuntimeError,
                    "this data set is being read by another thread; open one for each thread");
    throw nanobind::python_error();
}

}  // namespace tune::loader::python
