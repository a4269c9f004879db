"""What the casework needs of the world, as Protocols in the words of the domain."""
