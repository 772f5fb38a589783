#pragma once
// Batches and samples as Python objects.

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "loader/dataset.h"
#include "loader/format/mds/encoding.h"
#include "loader/packing/packed_dataset.h"

namespace tune::loader::python {

/// The library whose arrays are made. kDlpack: objects with __dlpack__ and the buffer protocol,
/// without importing a library.
enum class ArrayKind { kNumpy, kTorch, kJax, kDlpack };

/// How batches are handed out.
struct BatchFormat {
    ArrayKind arrays = ArrayKind::kNumpy;
    /// Columns of varying size as (data, offsets) instead of a list of Python objects.
    bool has_offsets = false;
    /// Key of the sample ids in each batch; empty: they are left out.
    std::string ids_key = {};
};

/// How payloads of the column become objects; of a table's "list:", whose payloads are elements
/// without a header, the kind is kBytes. Errors: kInvalidParameterValue for an unknown encoding.
[[nodiscard]] Result<Encoding> encoding_of(const ColumnInfo& column);

/// A dict of the batch's columns. A null is None in a list; of columns that are arrays or offsets,
/// "NAME__valid" is a bool array, false where they hold zeros in place of a null. Arrays share the
/// batch's memory, which is given back when the last of them goes. REQUIRES: the GIL.
[[nodiscard]] nanobind::dict batch_dict(Batch batch, const std::vector<Encoding>& encodings,
                                        const BatchFormat& format);

/// {"tokens", "segment_ids", "positions"} as arrays [sequences, length], int64, int32 and int32,
/// and "pieces", a numpy array [pieces, 5]. They share the batch's memory. REQUIRES: the GIL.
[[nodiscard]] nanobind::dict packed_dict(PackedBatch batch, const BatchFormat& format);

/// Sample `row` of the batch as mosaicml-streaming gives it, in memory of its own. Images, JSON,
/// decimals and pickles are given as bytes. REQUIRES: the GIL.
[[nodiscard]] nanobind::dict sample_dict(const Batch& batch, std::size_t row,
                                         const std::vector<Encoding>& encodings);

/// int64 [ids.size()], a numpy array with memory of its own.
[[nodiscard]] nanobind::object ids_array(std::vector<std::int64_t> ids);

}  // namespace tune::loader::python
