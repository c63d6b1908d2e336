#include "inference/dropout.hpp"

namespace mt_scaffold {

DropoutLaw::DropoutLaw(double p) {
  const auto scaled = [](double probability) {
    return probability >= 1.0 ? ~uint64_t{0} : static_cast<uint64_t>(probability * 18446744073709551616.0);
  };
  // (1 - p)^k by repeated multiplication: the last digit of std::pow differs between platforms.
  double survival = 1.0;
  for (int k = 0; k < 64; ++k) survival_.push_back(scaled(survival *= 1.0 - p));
  double power = 1.0 - p;  // (1 - p)^(2^digit)
  for (int digit = 0; digit < 62 && scaled(power) > 0; ++digit, power *= power)
    digit_.push_back(scaled(power / (1.0 + power)));
}

}  // namespace mt_scaffold
