// One word at a time, with or without dropout.
#include <cstring>

#include "io/interruption.hpp"
#include "segment/applier.hpp"
#include "segment/applier_worker.hpp"
#include "text/notation.hpp"

namespace mt_scaffold {

// Writes the output to worker.text and returns the number of decisions that dropout makes on the word.
uint32_t Applier::segment_word(Worker& worker, std::string_view word, Decisions* decisions) {
  uint32_t replacements = 0;
  std::vector<Piece>& pieces = worker.pieces;
  if (!isolate_) {
    replacements = segmenter_->segment(word, pieces, *worker.scratch, decisions);
  } else {
    pieces.clear();
    uint32_t begin = 0;
    for (const WordPart& part : isolate_(word)) {
      if (part.glossary) {
        pieces.push_back({begin, begin + part.length});
      } else {
        replacements +=
            segmenter_->segment(word.substr(begin, part.length), worker.part_pieces, *worker.scratch, decisions);
        for (const Piece& piece : worker.part_pieces) pieces.push_back({begin + piece.begin, begin + piece.end});
      }
      begin += part.length;
    }
  }
  write_pieces(worker, word);
  return replacements;
}

// Writes the ids of pieces; returns false if a piece is not a token with an id.
static bool write_ids(const std::vector<Piece>& pieces, const std::vector<int32_t>& id_of_token, int32_t none,
                      std::string& text) {
  text.resize(pieces.size() * sizeof(int32_t));
  char* to = text.data();
  for (const Piece& piece : pieces) {
    const auto token = static_cast<size_t>(piece.token);
    if (token >= id_of_token.size() || id_of_token[token] == none) return false;
    std::memcpy(to, &id_of_token[token], sizeof(int32_t));
    to += sizeof(int32_t);
  }
  return true;
}

void Applier::write_pieces(Worker& worker, std::string_view word) const {
  const std::vector<Piece>& pieces = worker.pieces;
  std::string& text = worker.text;
  if (!id_of_token_.empty() && write_ids(pieces, id_of_token_, kNoId, text)) return;
  text.clear();
  std::string form;
  for (size_t i = 0; i < pieces.size(); ++i) {
    may_interrupt(i);
    const std::string_view piece = word.substr(pieces[i].begin, pieces[i].end - pieces[i].begin);
    const bool last = i + 1 == pieces.size();
    const auto token = static_cast<size_t>(pieces[i].token);
    if (token < id_of_token_.size() && id_of_token_[token] != kNoId) {
      text.append(reinterpret_cast<const char*>(&id_of_token_[token]), sizeof(int32_t));
    } else if (dictionary_) {
      form.assign(piece);
      if (!last && !notation_) form += segmenter_->separator();
      const auto found = dictionary_->find(form);
      if (found == dictionary_->end()) {
        append_unknown(text, piece, last && !notation_);
      } else {
        text.append(reinterpret_cast<const char*>(&found->second), sizeof found->second);
      }
    } else if (notation_) {
      append_notation(text, piece);
      if (!last) text += ' ';
    } else {
      text += piece;
      if (!last) text.append(segmenter_->separator()).append(1, ' ');
    }
  }
}

}  // namespace mt_scaffold
