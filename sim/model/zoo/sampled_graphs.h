#pragma once
#include "sim/model/graph.h"

// Networks over neighbourhoods that are sampled of a large graph.
namespace reckon {

/// R-GAT [Schlichtkrull 2018, arXiv:1703.06103; Velickovic 2018, arXiv:1710.10903] on IGBH-Full
/// [Khatua 2023, arXiv:2302.13522] as MLPerf trains it (mlcommons/training:graph_neural_network):
/// three layers of an attention of four heads for each of 11 relations, 1,024 -> 512 -> 512 -> 512,
/// then 2,983 classes; up to 15, 10 and 5 neighbours of each relation a hop. A record is a seed
/// paper with its share of a batch's neighbourhood.
///
/// Work: a layer computes the nodes that a later one reads, and projects the sources and targets of
/// each relation once. How many nodes that is follows from the data's counts, and is an upper
/// bound: a node of mean degree d has min(d, fan-out) neighbours (of unequal nodes it is less, by
/// Jensen's inequality), neighbours are drawn evenly over their type (popular ones repeat more),
/// and each paper has a journal and a conference, whose links no source counts. The batch is 2,048
/// seeds a device; distinct nodes a seed are fewer in a larger one. Features are read from memory
/// as fast as a device reads its own: where they lie (1.1 TB in fp16, over devices or hosts) is not
/// modelled.
Expected<ModelGraph> make_rgat_mlperf();

}  // namespace reckon
