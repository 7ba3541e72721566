#include <utility>

#include "executor/comm/rendezvous/coordinator.h"

// What the rendezvous says on the wire.
namespace reckon {

namespace {
std::vector<std::byte> bytes_taken(const FieldWriter& fields) {
  return {fields.bytes().begin(), fields.bytes().end()};
}

int small_number(FieldReader& fields) {
  constexpr std::int64_t kMost = 1 << 30;
  const std::int64_t value = fields.number();
  if (value < 0 || value > kMost) throw WireError("a number out of range");
  return int(value);
}

void write(FieldWriter& fields, const Member& member) {
  fields.number(member.rank).number(int(member.role)).text(member.address.host);
  fields.number(member.address.port).text(member.host).number(member.process);
}

Member read_member(FieldReader& fields) {
  Member member;
  member.rank = small_number(fields);
  const int role = small_number(fields);
  if (role > int(Role::inference)) throw WireError("an unknown role");
  member.role = Role(role);
  member.address.host = fields.text();
  const int port = small_number(fields);
  if (port > UINT16_MAX) throw WireError("a port out of range");
  member.address.port = std::uint16_t(port);
  member.host = fields.text();
  member.process = fields.number();
  return member;
}
}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  FieldWriter fields;
  fields.number(hello.attempt).number(hello.size);
  write(fields, hello.member);
  fields.text(hello.mark);
  fields.number(std::int64_t(hello.settings.size()));
  for (const auto& [name, value] : hello.settings) fields.text(name).text(value);
  return bytes_taken(fields);
}
Hello decode_hello(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  Hello hello;
  hello.attempt = small_number(fields);
  hello.size = small_number(fields);
  hello.member = read_member(fields);
  hello.mark = fields.text();
  const int settings = small_number(fields);
  for (int i = 0; i < settings; ++i) {
    std::string name = fields.text();
    hello.settings[std::move(name)] = fields.text();
  }
  return hello;
}

std::vector<std::byte> encode(const Return& back) {
  FieldWriter fields;
  fields.number(back.attempt).text(back.token);
  return bytes_taken(fields);
}
Return decode_return(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  Return back;
  back.attempt = small_number(fields);
  back.token = fields.text();
  return back;
}

std::vector<std::byte> encode(const std::vector<Member>& members) {
  FieldWriter fields;
  fields.number(std::int64_t(members.size()));
  for (const Member& member : members) write(fields, member);
  return bytes_taken(fields);
}
std::vector<Member> decode_members(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  std::vector<Member> members;
  const int count = small_number(fields);
  for (int i = 0; i < count; ++i) members.push_back(read_member(fields));
  return members;
}

std::vector<std::byte> encode(const std::vector<int>& ranks) {
  FieldWriter fields;
  fields.number(std::int64_t(ranks.size()));
  for (const int rank : ranks) fields.number(rank);
  return bytes_taken(fields);
}
std::vector<int> decode_ranks(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  std::vector<int> ranks;
  const int count = small_number(fields);
  for (int i = 0; i < count; ++i) ranks.push_back(small_number(fields));
  return ranks;
}

}  // namespace reckon
