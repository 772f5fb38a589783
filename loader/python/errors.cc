#include "loader/python/errors.h"

namespace tune::loader::python {
namespace {

PyObject* data_loss_error = nullptr;

PyObject* exception_of(Code code) {
    switch (code) {
        case Code::kInvalidParameterValue: return PyExc_ValueError;
        case Code::kResourceDoesNotExist: return PyExc_FileNotFoundError;
        case Code::kResourceAlreadyExists: return PyExc_FileExistsError;
        case Code::kPermissionDenied: return PyExc_PermissionError;
        case Code::kNotImplemented: return PyExc_NotImplementedError;
        case Code::kResourceExhausted: return PyExc_MemoryError;
        case Code::kTemporarilyUnavailable:
        case Code::kDeadlineExceeded: return PyExc_TimeoutError;
        case Code::kDataLoss: return data_loss_error;
        default: return PyExc_RuntimeError;
    }
}

}  // namespace

void define_errors(nanobind::module_& module) {
    data_loss_error = PyErr_NewExceptionWithDoc(
        "tuneloader.DataLossError",
        "A file of the data set is not what its index says: shortened, changed or damaged.",
        PyExc_OSError, nullptr);
    module.attr("DataLossError") = nanobind::borrow(data_loss_error);
}

void raise(const Error& error) {
    PyErr_SetString(exception_of(error.code), error.text().c_str());
    throw nanobind::python_error();
}

}  // namespace tune::loader::python
