#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "executor/probe/probe.h"
#include "executor/probe/scratch_folder.h"
#include "executor/train/checkpoint/durable_file.h"
#include "sim/base/unit_text.h"

namespace reckon {

std::vector<ProbeRecord> probe_checkpoints(const ProbeBench& bench,
                                           const std::filesystem::path& directory, Bytes size) {
  const ScratchFolder folder(directory);
  const std::filesystem::path file = folder.path() / "shard";
  std::vector<std::byte> content(std::size_t(size.v));
  for (std::size_t i = 0; i < content.size();
       ++i)  // nothing that a file system could compress away
    content[i] = std::byte((i * 2654435761u) >> 13 & 0xff);
  const std::span<const std::byte> parts[] = {content};
  RepeatRule rule = bench.rule;
  rule.at_least = 3;
  ProbeRecord save;
  save.kind = "checkpoint_save";
  save.item = format_bytes(size) + " with fsync";
  save.bytes = size;
  summarize(repeat_timed(rule, 1, [&] { write_durably(file, parts); }), save);

  ProbeRecord restore;
  restore.kind = "checkpoint_restore";
  restore.item = format_bytes(size);
  restore.bytes = size;
  summarize(repeat_timed(rule, 1,
                         [&] {
                           {
                             const FileHandle cached = open_file(file, O_RDONLY);
                             ::posix_fadvise(cached.get(), 0, 0, POSIX_FADV_DONTNEED);
                           }
                           content = read_bytes(file);
                         }),
            restore);
  return {save, restore};
}

}  // namespace reckon
