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
    replacements = segmenter_->segment(word, pieces, worker.scratch, decisions);
  } else {
    pieces.clear();
    uint32_t begin = 0;
    for (const WordPart& part : isolate_(word)) {
      if (part.glossary) {
        pieces.push_back({begin, begin + part.length});
      } else {
        replacements +=
            segmenter_->segment(word.substr(begin, part.length), worker.part_pieces, worker.scratch, decisions);
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
  if (output_ == Output::kIdsOfTokens && write_ids(pieces, id_of_token_, kNoId, text)) return;
  text.clear();
  std::string form;
  for (size_t i = 0; i < pieces.size(); ++i) {
    may_interrupt(i);
    const std::string_view piece = word.substr(pieces[i].begin, pieces[i].end - pieces[i].begin);
    const bool last = i + 1 == pieces.size();
    switch (output_) {
      case Output::kSubwords:
        text += piece;
        if (!last) text.append(segmenter_->separator()).append(1, ' ');
        break;
      case Output::kNotation:
        append_notation(text, piece);
        if (!last) text += ' ';
        break;
      case Output::kIdsOfSubwords:
        form.assign(piece);
        if (!last) form += segmenter_->separator();
        append_id_of(form, piece, last, text);
        break;
      case Output::kIdsOfTokens:
        append_id_of(form.assign(piece), piece, false, text);
        break;
    }
  }
}

void Applier::append_id_of(const std::string& form, std::string_view piece, bool final, std::string& text) const {
  const auto append = [&](int32_t id) { text.append(reinterpret_cast<const char*>(&id), sizeof id); };
  if (const auto found = dictionary_->find(form); found != dictionary_->end()) return append(found->second);
  if (unknown_ != kSpellOut) return append(unknown_);
  for (size_t i = 0; i < piece.size(); ++i)
    append(static_cast<unsigned char>(piece[i]) + (final && i + 1 == piece.size() ? 256 : 0));
}

}  // namespace mt_scaffold
