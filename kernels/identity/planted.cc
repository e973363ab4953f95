// Compiled and linked with the options that no kernel may have, to show that they are seen.
namespace plumbline {

float PlantedSum(float a, float b) { return a + b; }

}  // namespace plumbline
