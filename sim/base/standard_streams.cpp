#include "sim/base/standard_streams.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "sim/base/text/printable.h"

namespace reckon {

bool write_text(int descriptor, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) return false;
    if (n < 0)
      throw std::runtime_error(
          fmt::format("cannot write {}: {}", printable(name), std::strerror(errno)));
    text.remove_prefix(std::size_t(n));
  }
  return true;
}

void print(std::string_view text) {
  write_text(STDOUT_FILENO, printable_lines(text), "standard output");
}

void print_error(std::string_view text) { print_control(printable_lines(text)); }

void print_control(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace reckon
