#include "executor/train/checkpoint/checkpoint_shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/checkpoint/safetensors.h"
#include "executor/train/records/identity_json.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

using Json = nlohmann::json;
static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr int kShardVersion = 2;  // 1 was a format of our own
constexpr const char *kOurs = "reckon", *kDigest = "reckon_xxh3";
/// What stands before the digits of the header's digest. In a text of JSON its quotes would be
/// escaped, so it stands nowhere else.
constexpr std::string_view kBeforeDigits = R"("reckon_xxh3":")";
constexpr std::string_view kNoDigits = "0000000000000000";
constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);

std::uint64_t text_digest(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

/// What the file calls each tensor: several slices of one need names that differ.
std::vector<std::string> keys_of(const ShardHeader& h) {
  std::map<std::string_view, int> slices;
  for (const ShardHeader::Tensor& t : h.tensors) ++slices[t.slice.name];
  std::vector<std::string> keys;
  for (const ShardHeader::Tensor& t : h.tensors)
    keys.push_back(slices[t.slice.name] == 1 ? t.slice.name : t.slice.name + to_text(t.slice.box));
  return keys;
}

std::string ours_of(const ShardHeader& h, const std::vector<std::string>& keys) {
  Json tensors = Json::object();
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const ShardHeader::Tensor& t = h.tensors[k];
    Json& about = tensors[keys[k]] = {
        {"global_shape", t.slice.global}, {"offset", t.slice.box.first}, {"xxh3", t.digest}};
    if (keys[k] != t.slice.name) about["name"] = t.slice.name;
  }
  RECKON_CHECK(tensors.size() == keys.size());
  Json json{{"schema_version", kShardVersion},
            {"rank", h.rank},
            {"step", h.step},
            {"attempt", h.attempt},
            {"counters", h.counters},
            {"tensors", tensors}};
  write_identity(json, h.identity);
  return json.dump();
}

/// The header's text with its digest, which `header` gets as well.
std::string header_text(ShardHeader& header) {
  const std::vector<std::string> keys = keys_of(header);
  SafetensorsHeader stored{.metadata = {{"format", "pt"},
                                        {kOurs, ours_of(header, keys)},
                                        {kDigest, std::string(kNoDigits)}},
                           .tensors = {}};
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const ShardHeader::Tensor& t = header.tensors[k];
    stored.tensors.push_back(
        {keys[k], t.slice.type, t.slice.box.length, t.begin, t.begin + bytes_of(t.slice)});
  }
  std::string text = safetensors_text(stored);
  header.digest = text_digest(text);
  text.replace(text.find(kBeforeDigits) + kBeforeDigits.size(), kNoDigits.size(),
               fmt::format("{:016x}", header.digest));
  return text;
}

/// What the metadata says beside the tensors of the file. Throws nlohmann's exceptions: a header
/// whose digest is right but whose keys are not was written by another version.
ShardHeader from_metadata(const SafetensorsHeader& stored) {
  const auto ours = stored.metadata.find(kOurs);
  const Json json = Json::parse(ours == stored.metadata.end() ? "" : ours->second);
  ShardHeader h;
  h.identity = read_identity(json);
  h.rank = json.at("rank");
  h.step = json.at("step");
  h.attempt = json.at("attempt");
  h.counters = json.at("counters").get<Counters>();
  for (const StoredTensor& t : stored.tensors) {
    const Json& about = json.at("tensors").at(t.name);
    h.tensors.push_back({.slice = {.name = about.value("name", t.name),
                                   .global = about.at("global_shape"),
                                   .box = {about.at("offset"), t.shape},
                                   .type = t.type},
                         .begin = t.begin,
                         .digest = about.at("xxh3")});
  }
  return h;
}

/// Reads one file; every failure names it.
class ShardReader {
 public:
  explicit ShardReader(const std::filesystem::path& file)
      : file_(file), handle_(open_file(file, O_RDONLY)) {}

  ShardHeader header() {
    std::uint64_t length = 0;
    read(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > kSafetensorsHeaderMax) fail("is damaged: its header cannot be so long");
    std::string text(std::min(length, size()), ' ');  // no more than there is
    read(kLengthBytes, std::as_writable_bytes(std::span(text)));
    if (text.size() < length) fail("is truncated");
    const std::uint64_t digest = check_digest(text);
    const auto stored = parse_safetensors(text);
    if (!stored) fail(fmt::format("is no safetensors file: {}", stored.error()));
    ShardHeader header = header_of(*stored);
    header.digest = digest;
    header.file_bytes = kLengthBytes + length;
    for (ShardHeader::Tensor& t : header.tensors) {
      if (const auto problem = problem_of(t.slice))
        fail("holds a tensor that is none: " + *problem);
      t.begin += kLengthBytes + length;
      header.file_bytes = t.begin + bytes_of(t.slice);
    }
    if (size() < header.file_bytes)
      fail(fmt::format("is truncated: {} of {} bytes are there", size(), header.file_bytes));
    if (size() > header.file_bytes)
      fail(fmt::format("is damaged: {} bytes instead of {}", size(), header.file_bytes));
    return header;
  }

  void read(std::uint64_t at, std::span<std::byte> room) {
    while (!room.empty()) {
      const ssize_t n = ::pread(handle_.get(), room.data(), room.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) cannot_read(errno);
      if (n == 0) fail("is truncated");
      room = room.subspan(static_cast<std::size_t>(n));
      at += static_cast<std::uint64_t>(n);
    }
  }

  /// All of a tensor, through `buffer`; `alive` is called for each part.
  void verify(const ShardHeader::Tensor& t, std::span<std::byte> buffer,
              const std::function<void()>& alive) {
    XXH3_state_t* state = XXH3_createState();
    RECKON_CHECK(state != nullptr);
    const auto release = [](XXH3_state_t* made) { XXH3_freeState(made); };
    const std::unique_ptr<XXH3_state_t, decltype(release)> owner(state, release);
    XXH3_64bits_reset(state);
    const std::uint64_t end = t.begin + bytes_of(t.slice);
    for (std::uint64_t at = t.begin; at < end;) {
      const auto part =
          buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(end - at, buffer.size())));
      read(at, part);
      XXH3_64bits_update(state, part.data(), part.size());
      if (alive) alive();
      at += part.size();
    }
    check(t, XXH3_64bits_digest(state));
  }

  void whole(const ShardHeader::Tensor& t, std::span<std::byte> room) {
    RECKON_CHECK(room.size() == bytes_of(t.slice));
    read(t.begin, room);
    check(t, XXH3_64bits(room.data(), room.size()));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw CheckpointError(file_.string() + ' ' + what);
  }

  /// What it holds is not known to be damaged.
  [[noreturn]] void cannot_read(int error) const {
    throw FileError(fmt::format("cannot read {}: {}", file_.string(), std::strerror(error)));
  }

  std::uint64_t check_digest(std::string text) const {
    const std::size_t at = text.find(kBeforeDigits);
    const std::size_t first = at + kBeforeDigits.size();
    if (at == std::string::npos || first + kNoDigits.size() > text.size())
      fail("is damaged, or no file of reckon: its header has no checksum");
    const std::string digits = text.substr(first, kNoDigits.size());
    text.replace(first, kNoDigits.size(), kNoDigits);
    const std::uint64_t digest = text_digest(text);
    if (digits != fmt::format("{:016x}", digest))
      fail(fmt::format("is damaged: its header's checksum differs (bytes {} to {})", kLengthBytes,
                       kLengthBytes + text.size()));
    return digest;
  }

  ShardHeader header_of(const SafetensorsHeader& stored) const {
    try {
      return from_metadata(stored);
    } catch (const Json::exception& e) {
      fail(fmt::format("has a header that this reckon cannot read ({})", e.what()));
    }
  }

  void check(const ShardHeader::Tensor& t, std::uint64_t digest) const {
    if (digest == t.digest) return;
    fail(fmt::format(
        "is damaged: the checksum of tensor '{}' differs (bytes {} to {}: {:016x}, not {:016x})",
        t.slice.name, t.begin, t.begin + bytes_of(t.slice), digest, t.digest));
  }

  std::uint64_t size() const {
    struct stat about {};
    if (::fstat(handle_.get(), &about) != 0) cannot_read(errno);
    return static_cast<std::uint64_t>(about.st_size);
  }

  std::filesystem::path file_;
  FileHandle handle_;
};

}  // namespace

ShardHeader write_shard(const std::filesystem::path& file, ShardHeader header,
                        std::span<const StateTensor> tensors) {
  std::vector<const StateTensor*> order;
  for (const StateTensor& t : tensors) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [](const StateTensor* a, const StateTensor* b) {
    return bytes_of(a->slice.type) > bytes_of(b->slice.type);
  });
  header.tensors.clear();
  std::vector<std::span<const std::byte>> parts(2);  // the header is known last
  std::uint64_t end = 0;
  for (const StateTensor* t : order) {
    RECKON_CHECK(!problem_of(t->slice) && bytes_of(t->slice) == t->bytes.size());
    header.tensors.push_back({.slice = t->slice,
                              .begin = std::exchange(end, end + t->bytes.size()),
                              .digest = XXH3_64bits(t->bytes.data(), t->bytes.size())});
    parts.push_back(t->bytes);
  }
  const std::string text = header_text(header);
  const std::uint64_t length = text.size();
  parts[0] = std::as_bytes(std::span(&length, 1));
  parts[1] = std::as_bytes(std::span(text));
  for (ShardHeader::Tensor& t : header.tensors) t.begin += kLengthBytes + length;
  header.file_bytes = kLengthBytes + length + end;
  write_durably(file, parts);
  return header;
}

ShardHeader read_shard_header(const std::filesystem::path& file) {
  return ShardReader(file).header();
}

void verify_shard(const std::filesystem::path& file, const std::function<void()>& alive) {
  ShardReader reader(file);
  const ShardHeader header = reader.header();
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (const ShardHeader::Tensor& tensor : header.tensors) reader.verify(tensor, buffer, alive);
}

void read_stored(const std::filesystem::path& file, const ShardHeader::Tensor& tensor,
                 std::span<std::byte> room) {
  ShardReader(file).whole(tensor, room);
}

}  // namespace reckon
