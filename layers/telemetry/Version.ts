/** The version of the package, as its manifest has it. */
export const version = "0.1.0"
