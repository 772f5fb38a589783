#pragma once
// Small MDS datasets, written by the loader's own writer, for tests of the trainer.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "loader/dataset.h"
#include "loader/format/mds/writer.h"

namespace tune::train {

/// A directory that is removed at the end.
class DataSet {
public:
    DataSet() : path_(std::filesystem::temp_directory_path() / ("train_test." + random_hex(6))) {}
    ~DataSet() { std::filesystem::remove_all(path_); }
    DataSet(const DataSet&) = delete;
    DataSet& operator=(const DataSet&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// Writes a split; `rows` hold the values in the order of `columns`.
    void write(const std::string& split,
               const std::vector<std::pair<std::string, std::string>>& columns,
               const std::vector<std::vector<loader::Value>>& rows) const {
        auto writer = loader::MdsWriter::open({.directory = path_ / split, .columns = columns});
        ASSERT_TRUE(writer) << writer.error().text();
        for (const auto& row : rows) {
            std::vector<loader::Value> stored;
            for (const std::string& name : writer->column_names())
                for (std::size_t i = 0; i < columns.size(); ++i)
                    if (columns[i].first == name) stored.push_back(row[i]);
            const auto written = writer->write(stored);
            ASSERT_TRUE(written) << written.error().text();
        }
        ASSERT_TRUE(writer->finish());
    }

    [[nodiscard]] std::unique_ptr<loader::Dataset> open(const std::string& split,
                                                        std::int64_t batch_size) const {
        loader::DatasetOptions options;
        options.directory = path_;
        options.split = split;
        options.batch_size = batch_size;
        options.threads = 0;
        auto dataset = loader::Dataset::open(options);
        EXPECT_TRUE(dataset) << dataset.error().text();
        return std::move(dataset).value();
    }

private:
    std::filesystem::path path_;
};

}  // namespace tune::train
