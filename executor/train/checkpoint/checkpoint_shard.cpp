#include "executor/train/checkpoint/checkpoint_shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/identity_json.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

using Json = nlohmann::json;
static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr char kMagic[8] = {'R', 'C', 'K', 'N', 'C', 'K', 'P', 'T'};
constexpr std::uint32_t kShardVersion = 1;
constexpr std::uint64_t kFileMax = std::uint64_t{1} << 62;
constexpr std::size_t kHeaderMax = std::size_t{64} << 20;  // beyond that it is no header of ours

struct Preamble {
  char magic[8];
  std::uint32_t version, header_bytes;
  std::uint64_t header_digest;
};
static_assert(sizeof(Preamble) == 24);

Json to_json(const ShardHeader& h) {
  Json sections = Json::array();
  for (const ShardHeader::Section& s : h.sections)
    sections.push_back({{"name", s.name}, {"bytes", s.bytes}, {"xxh3", s.digest}});
  Json json{{"rank", h.rank},
            {"step", h.step},
            {"attempt", h.attempt},
            {"counters", h.counters},
            {"sections", std::move(sections)}};
  write_identity(json, h.identity);
  return json;
}

/// Throws nlohmann's exceptions: a header whose digest is right but whose keys are not was written
/// by another version.
ShardHeader from_json(const Json& json) {
  ShardHeader h;
  h.identity = read_identity(json);
  h.rank = json.at("rank");
  h.step = json.at("step");
  h.attempt = json.at("attempt");
  h.counters = json.at("counters").get<Counters>();
  for (const Json& s : json.at("sections"))
    h.sections.push_back({s.at("name"), s.at("bytes"), s.at("xxh3")});
  return h;
}

/// Reads one file from front to end; every failure names it.
class ShardReader {
 public:
  explicit ShardReader(const std::filesystem::path& file)
      : file_(file), handle_(open_file(file, O_RDONLY)) {}

  ShardHeader header() {
    Preamble preamble{};
    read(std::as_writable_bytes(std::span(&preamble, 1)));
    if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0) fail("is no checkpoint of reckon");
    if (preamble.version != kShardVersion)
      fail(fmt::format("has format version {}; this reckon reads version {}", preamble.version,
                       kShardVersion));
    if (preamble.header_bytes > kHeaderMax) fail("is damaged: its header cannot be so long");
    std::vector<std::byte> text(preamble.header_bytes);
    read(text);
    if (section_digest(text) != preamble.header_digest)
      fail(fmt::format("is damaged: its header's checksum differs (bytes {} to {})",
                       sizeof preamble, sizeof preamble + text.size()));
    ShardHeader header = parse(text);
    header.digest = preamble.header_digest;
    header.file_bytes = sizeof preamble + text.size();
    at_ = header.file_bytes;
    for (const ShardHeader::Section& s : header.sections) {
      if (s.bytes > kFileMax - header.file_bytes) fail("is damaged: no file is so long");
      header.file_bytes += s.bytes;
    }
    check_size(header.file_bytes);
    return header;
  }

  void read(std::span<std::byte> room) {
    while (!room.empty()) {
      const ssize_t n = ::read(handle_.get(), room.data(), room.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
      if (n == 0) fail("is truncated");
      room = room.subspan(std::size_t(n));
    }
  }

  /// The next section, read in parts of `buffer`, each of which `take` gets.
  template <class Take>
  void section(const ShardHeader::Section& s, std::span<std::byte> buffer, Take take) {
    XXH3_state_t* state = XXH3_createState();
    RECKON_CHECK(state != nullptr);
    const auto release = [](XXH3_state_t* made) { XXH3_freeState(made); };
    const std::unique_ptr<XXH3_state_t, decltype(release)> owner(state, release);
    XXH3_64bits_reset(state);
    for (std::uint64_t left = s.bytes; left > 0;) {
      const std::span<std::byte> part =
          buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
      read(part);
      XXH3_64bits_update(state, part.data(), part.size());
      take();
      left -= part.size();
    }
    check(s, XXH3_64bits_digest(state));
  }

  /// The next section, whole.
  void section(const ShardHeader::Section& s, std::span<std::byte> room) {
    read(room);
    check(s, section_digest(room));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw CheckpointError(file_.string() + ' ' + what);
  }

 private:
  ShardHeader parse(std::span<const std::byte> text) {
    const char* begin = reinterpret_cast<const char*>(text.data());
    try {
      return from_json(Json::parse(begin, begin + text.size()));
    } catch (const Json::exception& e) {
      fail(fmt::format("has a header that this reckon cannot read ({})", e.what()));
    }
  }

  void check(const ShardHeader::Section& s, std::uint64_t digest) {
    const std::uint64_t begin = std::exchange(at_, at_ + s.bytes);
    if (digest == s.digest) return;
    fail(fmt::format(
        "is damaged: the checksum of section '{}' differs (bytes {} to {}: {:016x}, not {:016x})",
        s.name, begin, at_, digest, s.digest));
  }

  void check_size(std::uint64_t expected) {
    struct stat about {};
    if (::fstat(handle_.get(), &about) != 0) fail("cannot be read");
    const auto size = static_cast<std::uint64_t>(about.st_size);
    if (size < expected)
      fail(fmt::format("is truncated: {} of {} bytes are there", size, expected));
    if (size > expected) fail(fmt::format("is damaged: {} bytes instead of {}", size, expected));
  }

  std::filesystem::path file_;
  FileHandle handle_;
  std::uint64_t at_ = 0;  // where the next section begins
};

}  // namespace

std::uint64_t section_digest(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

ShardHeader write_shard(const std::filesystem::path& file, ShardHeader header,
                        std::span<const StateSection> sections) {
  header.sections.clear();
  for (const StateSection& s : sections)
    header.sections.push_back({s.name, s.bytes.size(), section_digest(s.bytes)});
  const std::string text = to_json(header).dump(-1, ' ', false, Json::error_handler_t::replace);
  RECKON_CHECK(text.size() <= kHeaderMax);
  Preamble preamble{};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  preamble.version = kShardVersion;
  preamble.header_bytes = static_cast<std::uint32_t>(text.size());
  const std::span<const std::byte> text_bytes = std::as_bytes(std::span(text));
  preamble.header_digest = header.digest = section_digest(text_bytes);
  header.file_bytes = sizeof preamble + text.size();

  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&preamble, 1)), text_bytes};
  for (const StateSection& s : sections) {
    parts.push_back(s.bytes);
    header.file_bytes += s.bytes.size();
  }
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
  for (const ShardHeader::Section& section : header.sections)
    reader.section(section, buffer, [&] {
      if (alive) alive();
    });
}

ShardHeader read_shard(const std::filesystem::path& file, std::span<const RestoreSection> targets,
                       std::string_view left_out) {
  ShardReader reader(file);
  ShardHeader header = reader.header();
  std::vector<const ShardHeader::Section*> wanted;
  for (const ShardHeader::Section& s : header.sections)
    if (!s.name.starts_with(left_out)) wanted.push_back(&s);
  std::vector<RestoreSection> rooms;
  for (const RestoreSection& t : targets)
    if (!t.name.starts_with(left_out)) rooms.push_back(t);
  if (wanted.size() != rooms.size())
    reader.fail(
        fmt::format("holds {} sections; this job's state has {}", wanted.size(), rooms.size()));
  for (std::size_t k = 0; k < rooms.size(); ++k)
    if (wanted[k]->name != rooms[k].name || wanted[k]->bytes != rooms[k].bytes.size())
      reader.fail(
          fmt::format("holds section '{}' of {} bytes where this job's state has '{}' of {}",
                      wanted[k]->name, wanted[k]->bytes, rooms[k].name, rooms[k].bytes.size()));
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  auto room = rooms.begin();
  for (const ShardHeader::Section& s : header.sections) {
    if (s.name.starts_with(left_out))
      reader.section(s, buffer, [] {});
    else
      reader.section(s, (room++)->bytes);
  }
  return header;
}

}  // namespace reckon
