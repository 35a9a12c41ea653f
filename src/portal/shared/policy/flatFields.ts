const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The fields of an object, those within objects by their path, such as `policy.rpm_limit`. */
export const flatFields = (value: unknown, prefix = ""): Readonly<Record<string, unknown>> =>
  isObject(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([name, inner]) =>
          isObject(inner) && Object.keys(inner).length > 0
            ? Object.entries(flatFields(inner, `${prefix}${name}.`))
            : [[prefix + name, inner]]
        )
      )
    : {}
