#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What tasks of a step of Slurm (`srun`) know of where their rank 0 is.
namespace reckon {

/// The first node of a list as SLURM_STEP_NODELIST has it: "node[03-05,9],other" is "node03", and
/// "rack[1-2]n[07,09]" is "rack1n07". Digits keep their zeros. nullopt: the text is no such list.
/// Task 0 runs on this node unless `srun --distribution=arbitrary` places it elsewhere. Source:
/// Slurm's srun(1), "OUTPUT ENVIRONMENT VARIABLES", and scontrol(1), "show hostnames".
std::optional<std::string> first_slurm_node(std::string_view list);

/// Tasks on the `node`-th node (from 0) of a list as SLURM_STEP_TASKS_PER_NODE has it: "8(x2),4" is
/// 8, 8 and 4. nullopt: the text is no such list, or has fewer nodes. Source: srun(1), as above.
std::optional<int> slurm_tasks_on_node(std::string_view list, int node);

/// Where rank 0 of a step listens: 10000 + (job + 7919 * step) mod 20000, which all tasks of the
/// step know. Below the ports that the system gives away (32768 and up). Two steps of
/// one job, or the same step of two jobs, share a port only where their numbers differ by a
/// multiple of 20000 (7919 is a prime); other steps by chance.
std::uint16_t slurm_meeting_port(std::int64_t job, std::int64_t step);

}  // namespace reckon
