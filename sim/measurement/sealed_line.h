#pragma once
#include <string>
#include <string_view>
#include <vector>

// A checksum in each line of a file of JSON lines, so that a flipped bit is found in the line that
// it hit, and costs no other:
//
//   {"record":"step","attempt":0,...,"loss":2.31,"xxh3":"9c3e07a1f2b4d580"}
//
// The digits are XXH3-64 of the text before `,"xxh3"`. The key comes last, so that tools which know
// nothing of it read the line as before.
namespace reckon {

/// `json`, an object with keys on one line, with its checksum.
std::string seal_line(std::string json);

/// Of a line without its newline. `none`: it ends as no line that seal_line() made.
enum class Seal { none, good, broken };
Seal seal_of(std::string_view line);

/// The records with a good checksum that lie within a line which is none itself: its newline was
/// lost, or what stands before or behind it is not ours. In order, without newlines.
std::vector<std::string_view> sealed_within(std::string_view line);

}  // namespace reckon
