import { capitalized, fieldWord } from "./fieldWords.ts"

/** The label of a field: the word of people, if there is one, and the API's own name, which curl and the configuration have. */
export const FieldName = ({ name }: { readonly name: string }) => {
  const word = fieldWord(name)
  return (
    <>
      {word !== undefined && `${capitalized(word)} `}
      <code>{name}</code>
    </>
  )
}
