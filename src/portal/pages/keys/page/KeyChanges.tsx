import { ChangeList } from "../../../shared/policy/ChangeList.tsx"

/** Who changed a key, and when. */
export const KeyChanges = ({ id }: { readonly id: string }) => <ChangeList target="key" id={id} />
