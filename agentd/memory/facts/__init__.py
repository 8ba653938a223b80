"""What agentd knows about its user: learnt from his words, told to the model, taken back,
forgotten.
"""
