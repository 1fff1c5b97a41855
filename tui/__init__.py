"""The screen: shows the loop and passes on what a person decides."""
