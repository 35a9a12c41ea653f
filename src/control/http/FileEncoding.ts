/** The bytes of a file in each encoding that it was stored in. */
export interface EncodedFile {
  readonly identity: Uint8Array
  readonly gzip?: Uint8Array
  readonly br?: Uint8Array
}

/** Returns the smallest form that the client accepts. `*` and the weights between encodings are ignored. */
export const encodingOf = (
  file: EncodedFile,
  accepted: string
): readonly [encoding: string | undefined, bytes: Uint8Array] => {
  const names = accepted
    .toLowerCase()
    .split(",")
    .map((item) => item.replaceAll(/\s/g, ""))
    .filter((item) => !/;q=0(?:\.0{0,3})?$/.test(item))
    .map((item) => item.split(";", 1)[0])
  if (file.br !== undefined && names.includes("br")) return ["br", file.br]
  if (file.gzip !== undefined && names.includes("gzip")) return ["gzip", file.gzip]
  return [undefined, file.identity]
}
