"""What every step needs: locks, results, checked values, fairseq's programs."""
