#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/queue/fifo.h"

// What Slurm's accounting says of jobs that ran.
namespace reckon {

/// Jobs with GPUs that started and ended, and the rows that are left out, by why.
struct SacctList {
  std::vector<JobRequest> jobs;  // times from the first submit on
  int steps = 0;                 // of a job: its own row counts (JobID with a dot)
  int without_gpu = 0;           // AllocTRES and ReqTRES have no gres/gpu
  int not_run = 0;               // cancelled while they waited, or still pending
  int running = 0;               // still, or suspended: their length is not known
};

/// `sacct --parsable2 --allusers --format=JobID,Submit,Start,End,AllocTRES,ReqTRES,Timelimit`
/// [sacct(1)]: fields between bars, or between commas (`--delimiter=,`, lists of TRES in quotes).
/// Needs JobID, Submit, Start and End as year-month-dayThours:minutes:seconds, and AllocTRES or
/// ReqTRES, whose gres/gpu is the job's GPUs over all its nodes (without it, the sum of its types).
/// Timelimit ([days-]hours:minutes:seconds) or TimelimitRaw (minutes), if there, is what the job
/// asked for. The times of one list are taken as of one clock: no daylight saving time.
/// An array's tasks are jobs of their own. Errors: columns that are not there; times and counts
/// that are none, with their place.
Expected<SacctList> read_sacct(const std::string& file, std::string_view bytes);

}  // namespace reckon
