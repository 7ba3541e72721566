#pragma once
#include "sim/model/graph.h"

// Networks for records: clicks, tables.
namespace reckon {

/// DLRM [Naumov 2019, arXiv:1906.00091] as MLPerf trained it on the Criteo 1 TB click logs:
/// mlcommons/training:recommendation_v2/torchrec_dlrm/README.MD, "Preliminary Training Results".
/// 13 numbers and 26 categories a record, vectors of 128, one id a category, pairwise dots.
Expected<ModelGraph> make_dlrm_mlperf();
/// The same with the cross network of [Wang 2021, arXiv:2008.13535, section 3.2] of rank 512, three
/// layers, and several ids a category: the README's "MLPerf DLRM v2 benchmark".
Expected<ModelGraph> make_dlrm_dcnv2_mlperf();

/// NeuMF [He 2017, arXiv:1708.05031, section 3.4] on MovieLens 20M (138,493 users, 26,744 films
/// [Harper 2015, table 2]), of mlcommons/training:retired_benchmarks/ncf/neumf.py: 64 factors,
/// layers of 256, 256, 128 and 64. A record is a user and a film.
Expected<ModelGraph> make_ncf();
/// The same on MovieLens 1M (6,040 users, 3,706 films), of petuum/adaptdl:examples/NCF: 32 factors,
/// layers of 256, 128, 64 and 32.
Expected<ModelGraph> make_ncf_ml1m();

/// Wide & Deep [Cheng 2016, arXiv:1606.07792] on the Outbrain clicks, five layers of 1,024:
/// NVIDIA/DeepLearningExamples:TensorFlow2/Recommendation/WideAndDeep, README, "Default
/// configuration". 13 numbers and 16 categories, three of them of three ids. The wide part's
/// weights of a category are a table of vectors of one.
Expected<ModelGraph> make_wide_and_deep();

/// Variational autoencoder over the films that a user liked [Liang 2018, arXiv:1802.05814, section
/// 4.5: 600 and 200 wide] on MovieLens 20M: 20,108 films, 73 a user [table 1: 10 million of 136,677
/// users]; NVIDIA/DeepLearningExamples:TensorFlow/Recommendation/VAE-CF. The first layer looks the
/// films' rows up. A record is a user.
Expected<ModelGraph> make_vae_cf();

/// 13 features, 64 and 64 hidden, one price: [Chollet 2017, "Deep Learning with Python", section
/// 3.6].
Expected<ModelGraph> make_boston_housing_mlp();

}  // namespace reckon
