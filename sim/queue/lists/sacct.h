#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/queue/job_list.h"

// What Slurm's accounting says of jobs that ran.
namespace reckon {

/// `sacct --parsable2 --allusers --format=JobID,User,Account,Partition,QOS,Submit,Start,End,
/// AllocTRES,ReqTRES,Timelimit` [sacct(1)]: fields between bars, or between commas
/// (`--delimiter=,`, lists of TRES in quotes). Needs JobID, Submit, Start and End as
/// year-month-dayThours:minutes:seconds, and AllocTRES or ReqTRES, whose gres/gpu is the job's GPUs
/// over all its nodes (without it, the sum of its types). Timelimit ([days-]hours:minutes:seconds)
/// or TimelimitRaw (minutes), if there, is what the job asked for; User, Account (the team),
/// Partition (the queue) and QOS are kept. Left out are steps of jobs (their own row counts), rows
/// without gres/gpu, and jobs that never started or still run. The times of one list are taken as
/// of one clock: no daylight saving time. An array's tasks are jobs of their own. Errors: columns
/// that are not there; times and counts that are none, with their place.
Expected<JobList> read_sacct(const std::string& file, std::string_view bytes);

}  // namespace reckon
