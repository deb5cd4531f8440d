"""What this package uses of other libraries beyond what they publish; no other folder of ``model`` uses such a part.

Each module is for one library. Its ``PARTS`` name what it uses and what for, and a test looks them up in the installed
version, so that an update which takes one away fails with a sentence.
"""
