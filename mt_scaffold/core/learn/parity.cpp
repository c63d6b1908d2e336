#include "learn/parity.hpp"

#include <deque>
#include <string>
#include <utility>

#include "learn/learning_text.hpp"
#include "learn/merge_queue.hpp"
#include "learn/tokens.hpp"

namespace mt_scaffold {

namespace {

// A text that every merge is applied to, whichever text it was chosen from.
struct MergedText {
  MergedText(WordCounts words, Alphabet alphabet) : text(std::move(words), alphabet) {
    for (const TokenInfo& info : text.tokens) length += info.frequency;
  }

  void merge(const Merge& merge, std::string_view merged) {
    const Token left = text.tokens.intern(merge.left), right = text.tokens.intern(merge.right);
    const Token token = text.tokens.intern(merged);
    const int64_t before = text.tokens[token].frequency;
    text.replace(text.pairs.find_or_add(left, right), token);
    length -= text.tokens[token].frequency - before;
  }

  LearningText text;
  int64_t length = 0;  // in tokens
};

// A text that merges are also chosen from.
struct TrainingText : MergedText {
  TrainingText(WordCounts words, Alphabet alphabet, int64_t min_frequency)
      : MergedText(std::move(words), alphabet), queue(text.tokens, text.pairs, min_frequency) {}
  // The queue refers to the text.
  TrainingText(const TrainingText&) = delete;
  TrainingText& operator=(const TrainingText&) = delete;

  void merge(const Merge& merge, std::string_view merged) {
    MergedText::merge(merge, merged);
    text.for_each_raised_pair([&](uint32_t pair) { queue.push_pair(pair); });
  }

  MergeQueue queue;
};

class ParityLearner {
 public:
  ParityLearner(std::vector<WordCounts> training, std::vector<WordCounts> development, const ParityOptions& options)
      : options_(options), chosen_(training.size()), lengths_(training.size()) {
    if (options.global_merges > 0) {
      WordCounts together;
      for (const WordCounts& words : training) together.merge(words);
      together_.emplace_back(std::move(together), options.alphabet, options.min_frequency);
    }
    for (WordCounts& words : training)
      training_.emplace_back(std::move(words), options.alphabet, options.min_frequency);
    for (WordCounts& words : development) development_.emplace_back(std::move(words), options.alphabet);
  }

  ParityResult learn(const OnParityStep& on_step, const Tick& tick) {
    ParityResult result;
    std::vector<Merge>& merges = result.merges;
    std::string merged;
    while (merges.size() < options_.symbols) {
      if (merges.size() % kMergesPerTick == 0) tick(merges.size());
      if (merges.size() == options_.global_merges) together_.clear();
      measure();
      std::optional<size_t> language;
      if (together_.empty()) language = choose();
      TrainingText& from = language ? training_[*language] : together_.front();
      from.queue.settle();
      result.limited |= from.queue.reached_longest_token();
      if (!from.queue.has_pair()) {
        result.exhausted = true;
        result.language = language;
        break;
      }
      const MergeQueue::PairEntry top = from.queue.pop_pair();
      const Pair& pair = from.text.pairs[top.pair];
      const Tokens& tokens = from.text.tokens;
      merges.push_back({std::string(tokens[pair.left].text), std::string(tokens[pair.right].text), false});
      const Merge& merge = merges.back();
      if (on_step) on_step({merge.left, merge.right, top.count, language, lengths_});
      merged.assign(merge.left).append(merge.right);
      for (TrainingText& text : together_) text.merge(merge, merged);
      for (TrainingText& text : training_) text.merge(merge, merged);
      for (MergedText& text : development_) text.merge(merge, merged);
    }
    return result;
  }

 private:
  static constexpr uint64_t kMergesPerTick = 256;

  void measure() {
    for (size_t i = 0; i < lengths_.size(); ++i)
      lengths_[i] = development_.empty() ? training_[i].length : development_[i].length;
  }

  // The language whose text has the most tokens, of those that the window allows; the first of several.
  size_t choose() {
    size_t language = lengths_.size();
    for (size_t i = 0; i < lengths_.size(); ++i) {
      if (options_.window > 0 && chosen_[i] > options_.most_chosen) continue;
      if (language == lengths_.size() || lengths_[i] > lengths_[language]) language = i;
    }
    if (options_.window > 0) {
      ++chosen_[language];
      choices_.push_back(language);
      if (choices_.size() > options_.window) {
        --chosen_[choices_.front()];
        choices_.pop_front();
      }
    }
    return language;
  }

  const ParityOptions options_;
  std::deque<TrainingText> together_;  // one during the global merges, then none
  std::deque<TrainingText> training_;
  std::deque<MergedText> development_;
  std::vector<uint64_t> chosen_;  // how often each language is in choices_
  std::deque<size_t> choices_;    // the last `window` choices
  std::vector<int64_t> lengths_;
};

}  // namespace

ParityResult learn_parity(std::vector<WordCounts> training, std::vector<WordCounts> development,
                          const ParityOptions& options, const OnParityStep& on_step, const Tick& tick) {
  return ParityLearner(std::move(training), std::move(development), options).learn(on_step, tick);
}

}  // namespace mt_scaffold
