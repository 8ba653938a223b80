"""What sentences say: claims about the user, how two sentences differ, what is asked to be kept."""
