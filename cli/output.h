#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "sim/base/standard_streams.h"

namespace reckon::cli {

/// Writes beside the file and renames, so that a reader never sees half of it. Throws
/// std::runtime_error with the path and the reason when the file cannot be written. "-" is standard
/// output: as print() on a terminal, else byte by byte.
void write_file(const std::filesystem::path& file, std::string_view text);

/// All of a file. Throws std::runtime_error where it cannot be read.
std::string read_text(const std::filesystem::path& file);

using reckon::print;
using reckon::print_control;
using reckon::print_error;

/// Shows the share done, or a text, on one line of standard error, only if that is a terminal and
/// the run takes over two seconds. Empty (no callback to call) where standard error is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  std::function<void(double)> callback();
  /// Any text in place of the share.
  std::function<void(const std::string&)> text_callback();

 private:
  void show(const std::string& text);
  bool terminal_ = false;
  bool shown_ = false;
  long begin_ms_ = 0, last_ms_ = 0;
};

}  // namespace reckon::cli
