/** Calls `act` for each item, a few at once. The next call of a place starts after its last answer. */
export const inTurn = async <Item>(
  items: ReadonlyArray<Item>,
  act: (item: Item) => Promise<void>,
  atOnce = 4
): Promise<void> => {
  const rest = items.values()
  const work = async () => {
    for (const item of rest) await act(item)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}
