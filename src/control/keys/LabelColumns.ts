import { Schema } from "effect"
import { labelInputs } from "../api/schema/Labels.ts"
import type { ColumnValues } from "../store/Rows.ts"

const Labels = Schema.Struct(labelInputs)

/** The columns that a request sets. */
export const labelColumns = ({ description, owner_email, tags }: typeof Labels.Type): ColumnValues => ({
  ...(description !== undefined && { description }),
  ...(owner_email !== undefined && { owner_email }),
  ...(tags !== undefined && { tags: tags ?? [] })
})
