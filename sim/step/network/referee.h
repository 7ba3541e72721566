#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "sim/step/network/network.h"

// The network's second opinion: SimGrid, in a program of its own (sim/referee), asked over pipes.
namespace reckon {

/// Asks `program` (`reckon-referee`) each question, a process for each: SimGrid allows one
/// simulation a process, and a fresh one keeps its clock's full precision. Throws
/// std::runtime_error if `program` cannot be run, here already, or if it does not answer. name() is
/// "simgrid".
std::unique_ptr<NetworkModel> make_referee_network(std::filesystem::path program);

/// `reckon-referee` beside the running program, or where RECKON_REFEREE says. Throws
/// std::runtime_error, which says where it looked and how to get it, if there is none.
std::filesystem::path find_referee();

// What goes over the pipes: lines of numbers, doubles in their shortest exact form. Both ends throw
// std::runtime_error on anything else.
struct NetworkQuestion {
  Network network;
  ActivityGraph graph;
};
std::string write_question(const Network& network, const ActivityGraph& graph);
NetworkQuestion read_question(std::string_view text);
std::string write_answer(std::span<const Seconds> finish);
std::vector<Seconds> read_answer(std::string_view text);

}  // namespace reckon
