// The part of nanobind that is not in its headers.
#include <nb_combined.cpp>
