#pragma once
#include <string>
#include <vector>

#include "executor/comm/rendezvous/rendezvous.h"

// Where the members of a job reach each other, of the addresses by which they came to rank 0.
namespace reckon {

/// Who came over the loopback is on rank 0's machine: where `nonlocal` is not "", the others reach
/// it there, as they reach rank 0. Where all are on one machine a name may lead some to 127.0.0.1
/// and rank 0 to ::1, and one family serves all that compute.
void make_reachable(std::vector<Member>& members, const std::string& nonlocal);

/// Connections between those that compute are of one family. Why they cannot be made, with what to
/// do; "": they can.
std::string why_families_differ(const std::vector<Member>& members);

}  // namespace reckon
