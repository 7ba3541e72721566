#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>

#include "sim/referee/simgrid_network.h"
#include "sim/step/network/referee.h"

// Reads one question (sim/step/network/referee.h) on standard input and writes SimGrid's answer on
// standard output.
int main() {
  try {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    const reckon::NetworkQuestion question = reckon::read_question(text);
    const std::string answer =
        reckon::write_answer(reckon::SimGridNetwork{}.run(question.network, question.graph));
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "reckon-referee: %s\n", e.what());
    return 1;
  }
}
