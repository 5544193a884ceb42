package strategies

// RulesVersion is that of the engines' rules, as operators and runtime follow them: raised by hand whenever the same
// rows make other changes, so that whoever kept numbers of a run can tell why they moved.
const RulesVersion = 1
