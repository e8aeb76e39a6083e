"""Mechanisms by which clients prove who they are: messages in, messages out."""
