#pragma once
// What a trial writes goes from a pipe to a file.

#include <cstdint>

namespace tune::worker {

/// One output of the trial: a pipe to read and the file it goes to.
struct Output {
    const char* file_name;
    int pipe = -1;
    int file = -1;
    std::int64_t bytes = 0;    // written to the file
    std::int64_t lost = 0;     // could not be written (full disk)
    std::int64_t punched = 0;  // end of the hole
};

/// Moves what is there; the file is made with the first byte. With `to_end` until the pipe is
/// empty, else one buffer, so that signals and the other output get their turn. The pipe is closed
/// when the trial has closed it. True: there was something.
bool move_output(int directory, Output& output, bool to_end);

/// On a full disk: gives the end of the longest file back, so that a few lines of another one fit.
/// False: there is nothing to give.
[[nodiscard]] bool make_room(Output* outputs, int count);

}  // namespace tune::worker
