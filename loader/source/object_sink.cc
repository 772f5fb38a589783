#include "loader/source/object_sink.h"

#include "base/id.h"
#include "loader/source/source_library.h"

namespace tune::loader {
namespace {

class LocalSink final : public ObjectSink {
public:
    explicit LocalSink(std::filesystem::path root) : root_(std::move(root)) {}

    [[nodiscard]] Result<void> put(const std::filesystem::path& file,
                                   const std::string& name) const override {
        const std::filesystem::path target = root_ / name;
        const std::filesystem::path part =
            target.parent_path() / ("." + target.filename().string() + "." + random_hex(8));
        std::error_code error;
        std::filesystem::create_directories(target.parent_path(), error);
        if (!error) std::filesystem::copy_file(file, part, error);
        if (!error) std::filesystem::rename(part, target, error);
        if (!error) return {};
        Error failed{Code::kInternalError,
                     "'" + target.string() + "' cannot be written: " + error.message()};
        std::filesystem::remove(part, error);
        return failed;
    }

private:
    const std::filesystem::path root_;
};

}  // namespace

Result<std::shared_ptr<const ObjectSink>> open_sink(const std::string& url,
                                                    const SourceOptions& options) {
    if (is_local_url(url))
        return std::shared_ptr<const ObjectSink>(std::make_shared<LocalSink>(local_path(url)));
    TUNE_TRY(kind, url_kind(url_scheme(url), url));
    if (!kind.sink)
        return Error{
            Code::kNotImplemented,
            "'" + url + "' can be read, not written; write to a folder or an object store"};
    TUNE_TRY(function, library_function(kind.library, kind.sink));
    SinkResult result = Error{};
    reinterpret_cast<OpenSinkFunction*>(function)(url, options, result);
    return result;
}

}  // namespace tune::loader
