#include <unistd.h>
#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/checkpoint/safetensors.h"
#include "executor/train/checkpoint/tensor_reader.h"

// The header of a safetensors file: it is refused with a reason, or what is read is written and
// read again as the same. As the header of a checkpoint's part, with its checksum put right and as
// many bytes of data as it says, it is refused with a CheckpointError or holds tensors of which all
// and a part can be asked for.
namespace {

using namespace reckon;
namespace fs = std::filesystem;

constexpr std::uint64_t kDataMax = 1 << 16;

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

const fs::path& place() {
  static const fs::path file = [] {
    const fs::path memory = "/dev/shm";
    const fs::path above = fs::is_directory(memory) ? memory : fs::temp_directory_path();
    std::atexit([] { fs::remove(place()); });
    return above / ("reckon-fuzz-safetensors-" + std::to_string(::getpid()));
  }();
  return file;
}

/// The checksum of the text is put right where it has one.
std::string with_checksum(std::string text) {
  constexpr std::string_view kBefore = R"("reckon_xxh3":")";
  constexpr std::size_t kDigits = 16;
  const std::size_t at = text.find(kBefore);
  if (at == std::string::npos || at + kBefore.size() + kDigits > text.size()) return text;
  text.replace(at + kBefore.size(), kDigits, kDigits, '0');
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  text.replace(at + kBefore.size(), kDigits, digits);
  return text;
}

void read_tensors(const TensorReader& reader) {
  for (const auto& [name, tensor] : reader.tensors()) {
    TensorSlice half = tensor;
    if (!half.global.empty()) half.box.length[0] = (half.box.length[0] + 1) / 2;
    for (const TensorSlice& slice : {tensor, half}) {
      if (bytes_of(slice) > kDataMax) continue;
      std::vector<std::byte> room(bytes_of(slice));
      try {
        reader.read(slice, room);
      } catch (const CheckpointError& e) {
        require(*e.what() != 0, "a tensor is refused without a reason");
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text = with_checksum(std::string(reinterpret_cast<const char*>(bytes), size));
  const auto header = parse_safetensors(text);
  if (!header) {
    require(!header.error().empty(), "a header is refused without a reason");
  } else {
    const auto again = parse_safetensors(safetensors_text(*header));
    require(again.has_value() && *again == *header, "a header is written as another");
  }
  const std::uint64_t end =
      header && !header->tensors.empty() ? header->tensors.back().end : std::uint64_t{0};
  if (end > kDataMax) return 0;
  const std::uint64_t length = text.size();
  {
    std::ofstream file(place(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << text << std::string(end, '\0');
  }
  try {
    const TensorReader reader({place()});
    require(header.has_value(), "a header that is none is read");
    read_tensors(reader);
  } catch (const CheckpointError& e) {
    require(*e.what() != 0, "a file is refused without a reason");
  }
  return 0;
}
